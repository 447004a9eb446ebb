-- What agents say of themselves: what waits in their buffers, and their last warning. Null: nothing was said.
alter table monitoring_agents add column buffer_bytes bigint, add column buffer_batches bigint,
  add column last_warning text, add column last_warning_at timestamptz(3);

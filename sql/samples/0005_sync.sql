-- Up to where cells are computed is on the disk no sooner than the cells: a cell that a power cut took would not be computed again.
ALTER TABLE {db}.rollup_5m MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE {db}.rollup_1h MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

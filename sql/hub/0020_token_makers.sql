-- Who issued a token on the screen, and what they might do at that time. A token for somebody else is judged by both: it never
-- gives more than its maker had, nor more than the maker has now, and it ends with the maker. Null: made by a command of the
-- hub. No foreign key: a token whose maker was deleted must be known as such.
alter table api_tokens add column maker_id uuid;
alter table api_tokens add column maker_permissions text[];
create index api_tokens_maker on api_tokens (maker_id) where maker_id is not null;

-- Tokens from before: where the audit log says who made one for somebody else, and the maker still may log in, the token is
-- held to what the maker may do now. Every other one goes on as it was: as a token of its owner alone.
update api_tokens t set maker_id = m.id, maker_permissions = m.permissions || coalesce(
    (select array_agg(p) from user_roles ur join roles r on r.id = ur.role_id, unnest(r.permissions) p where ur.user_id = m.id), '{}')
  from audit_log a join users m on m.id = a.actor_id
  where a.action = 'token.create' and a.subject_type = 'token' and a.subject_id = t.id::text and a.actor_type = 'user'
    and a.actor_id <> t.user_id and m.disabled_at is null and t.revoked_at is null;

-- Requests a minute that a token of the company may have which was issued on the screen. Null: the hub's own bound.
alter table companies add column token_rate_max integer check (token_rate_max >= 1);

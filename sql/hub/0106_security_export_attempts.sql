-- A try of an export of findings has a number of its own, so that of two only one ends it: a hub that counts as lost may
-- still be writing.
alter table security_exports add column attempt uuid;

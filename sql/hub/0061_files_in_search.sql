-- Files of people are found by their names, as everything else is.
create trigger files_search after insert or delete or update of name, description on files
  for each row execute function keep_search_document('file', 'name', 'description,type', 'name,id');
update files set name = name;

-- Items of option lists are found by value, by their labels and by the name of their list.
create trigger option_items_search after insert or delete or update of value, label, label_vi on option_items
  for each row execute function keep_search_document('option_item', 'value', 'label,label_vi,list', 'list,value,id');
update option_items set value = value;

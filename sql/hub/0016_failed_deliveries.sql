-- What was counted were tries; from here on it is deliveries that failed for good.
update webhooks set failures_in_a_row = 0 where enabled;

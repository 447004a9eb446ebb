-- What is packed together grows to a megabyte of points, and of numbers of blocks, so that more of a series and its neighbours are alike. A read
-- of one series unpacks more for it: README.md has sizes and costs. Parts that stand are packed anew when they are merged.
ALTER TABLE {db}.samples_raw{_local} {on_cluster} MODIFY COLUMN points MODIFY SETTING min_compress_block_size = 1048576, max_compress_block_size = 1048576;
ALTER TABLE {db}.samples_raw{_local} {on_cluster} MODIFY COLUMN seq MODIFY SETTING min_compress_block_size = 1048576, max_compress_block_size = 1048576;

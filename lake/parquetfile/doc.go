// Package parquetfile writes batches as Parquet files, and says what is in them.
//
// Measure looks once at the values of a batch: nulls, smallest and greatest value of each leaf column, and how many different
// values a sample of it has. Write encodes the batch with what was measured: dictionaries only for columns where they pay (a
// dictionary over values that hardly repeat costs twice, in time and in bytes), pages of format V1 compressed by zstd level 1, and
// the types that every reader of lake tables knows: timestamps in microseconds as INT64, decimals by their precision as INT32,
// INT64 or fixed bytes, lists and maps in three levels; never INT96.
//
// Stream does the same for rows that come batch by batch and are too many to be held: the first of them decide on the dictionaries, and then
// all are encoded as they come. Where no column has others in it, texts with dictionaries are looked up here and handed to the Parquet library as
// numbers.
//
// The package knows neither table logs nor stores: it writes to an io.Writer, and its statistics are values, which a table format
// puts into its own form.
package parquetfile

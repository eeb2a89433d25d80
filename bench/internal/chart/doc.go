// Package chart draws figures over a logarithmic axis as SVG: what the benchmarks show of how something grows.
//
// It draws these charts and nothing else, in place of a library with fonts and rasterizers that whoever imports this module would have to download. It knows
// nothing of benchmarks.
package chart

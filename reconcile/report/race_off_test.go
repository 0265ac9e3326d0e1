//go:build !race

package report

// raced says that every access to memory is watched, which makes writing a workbook fifty times slower.
const raced = false

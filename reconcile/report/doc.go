// Package report writes what finance keeps: a business day, a range of days, the timeline of one order, the trial
// balance. It promises three things:
//
//   - Every format is written from the same rows. A report is facts that say what it is, and tables of typed cells
//     (table.go); csv.go, xlsx.go and json.go only write them.
//   - A report holds nothing of when or for whom it was made: the same books give the same bytes. All it says is read
//     in one snapshot.
//   - What came from outside cannot act in a spreadsheet, and what a spreadsheet would change stays as it is: text is
//     text, numbers are numbers (text.go).
//
// Rows are written as they are read, so that a report of a million rows needs no more memory than one of ten. Personal
// data and secrets are in no report. Start reading at table.go, then day.go and order.go. What each column means is in
// docs/reports.md.
package report

package postgres

// Lock is the number of an advisory lock. The server knows one set of numbers for a whole database, so all of ours stand
// here: two that shared one would wait for each other for no reason.
type Lock int64

// The locks.
const (
	LockList       Lock = 0x6461657361_01    // one process reads the gateway's list
	LockAudit      Lock = 0x6461657361_02    // one audit runs
	LockImport     Lock = 0x6461657361_03    // one import writes
	LockSeal       Lock = 0x6461657361_04    // one instance cuts and seals the journal
	LockMigrations Lock = 0x6461657361_05    // one instance changes the schema
	LockTemplate   Lock = 0x64616573612d7470 // one test binary makes the database that tests copy
)

// Locks lists every lock.
func Locks() []Lock {
	return []Lock{LockList, LockAudit, LockImport, LockSeal, LockMigrations, LockTemplate}
}

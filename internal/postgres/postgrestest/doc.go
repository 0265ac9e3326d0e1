// Package postgrestest gives every test a PostgreSQL database of its own, with all migrations applied.
//
// A test package calls [Run] from its TestMain, and a test calls [New]. Nothing needs to be prepared but PostgreSQL's
// programs: the first test of the machine starts a server, the test binaries that run beside it share it, and the last
// one stops it; a watchman stops it for binaries that were killed. DAESA_TEST_DATABASE_URL names another server to use.
//
// A database is a copy of a template that is made once for each set of migrations, so it costs some tens of
// milliseconds. The database of a failed test is kept, and its address logged.
package postgrestest

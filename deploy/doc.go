// Package deploy has what a production installation starts from. There is no code here but the test that keeps it true: it
// holds every setting that these files name against those that the program has.
package deploy

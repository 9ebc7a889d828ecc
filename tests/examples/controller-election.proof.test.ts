// The same tests, at their full size.
import './controller-election.ci.test.ts'

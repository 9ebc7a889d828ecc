// The same tests, at their full size.
import './faults.ci.test.ts'

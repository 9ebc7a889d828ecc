// The same tests, at their full size.
import './linearizability.ci.test.ts'

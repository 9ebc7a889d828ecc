// The same tests, at their full size.
import './linearizability.test.ts'

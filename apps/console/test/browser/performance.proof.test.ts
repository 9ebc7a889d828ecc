// The same tests, at their full size.
import './performance.ci.test.ts'

// The same tests, at their full size.
import './overlap.ci.test.ts'

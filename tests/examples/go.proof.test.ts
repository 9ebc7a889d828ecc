// The same tests, at their full size.
import './go.ci.test.ts'

// The same tests, at their full size.
import './e2e.ci.test.ts'

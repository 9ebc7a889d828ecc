// The same tests, at their full size.
import './races.ci.test.ts'

// The same tests, at their full size.
import './kill.ci.test.ts'

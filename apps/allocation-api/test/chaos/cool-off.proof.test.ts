// The same tests, at their full size.
import './cool-off.ci.test.ts'

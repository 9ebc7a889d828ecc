// The same tests, at their full size.
import './upgrade.ci.test.ts'

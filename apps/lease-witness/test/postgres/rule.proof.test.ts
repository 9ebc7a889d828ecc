// The same tests, at their full size.
import './rule.test.ts'

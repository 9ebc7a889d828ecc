// The same tests, at their full size.
import './stepped-clock.ci.test.ts'

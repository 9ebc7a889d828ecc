// The same tests, at their full size.
import './lifetimes-e2e.ci.test.ts'

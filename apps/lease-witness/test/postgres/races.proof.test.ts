// The same tests, at their full size.
import './races.test.ts'

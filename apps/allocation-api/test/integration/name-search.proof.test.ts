// The same tests, at their full size.
import './name-search.test.ts'

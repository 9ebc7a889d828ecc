// The same tests, at their full size.
import './model.test.ts'

// The same tests, at their full size.
import './election-model.test.ts'

// The same tests, at their full size.
import './transfer.test.ts'

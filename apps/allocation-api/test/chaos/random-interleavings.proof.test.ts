// The same tests, at their full size.
import './random-interleavings.ci.test.ts'

import './random-interleavings.ci.test.ts'

import './overlap.ci.test.ts'

import './go.ci.test.ts'

import './e2e.ci.test.ts'

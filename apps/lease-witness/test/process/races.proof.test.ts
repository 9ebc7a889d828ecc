import './races.ci.test.ts'

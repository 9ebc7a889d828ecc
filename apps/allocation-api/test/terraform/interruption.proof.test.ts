import './interruption.ci.test.ts'

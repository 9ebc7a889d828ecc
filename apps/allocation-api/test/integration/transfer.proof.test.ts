import './transfer.ci.test.ts'

import './transfer.test.ts'

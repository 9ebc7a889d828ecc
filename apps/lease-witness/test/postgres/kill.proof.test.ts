import './kill.ci.test.ts'

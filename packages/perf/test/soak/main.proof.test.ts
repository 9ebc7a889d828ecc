import './main.ci.test.ts'

import './rule.test.ts'

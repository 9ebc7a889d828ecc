import './election-model.test.ts'

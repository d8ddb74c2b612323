!> Without ierr an error prints its message and stops with a code other than 0. Run by tests/run.sh, which looks at both.
program stops
  use wakefmm
  implicit none
  type(wfmm_plan) :: plan

  call wfmm_plan_create(plan, options=wfmm_plan_options(index_base=7))
  print '(a)', 'this line is never reached'
end program stops

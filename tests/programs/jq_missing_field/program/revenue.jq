# The revenue of each customer, the best first.
group_by(.customer)
| map({
    customer: .[0].customer,
    revenue: (map(select(.discount) | .amount * (1 - .discount)) | add)
  })
| sort_by(-.revenue)
| .[]
| "\(.customer) \(.revenue)"

# The revenue of each customer, the best first.
group_by(.customer)
| map({
    customer: .[0].customer,
    revenue: (map(.amount * (1 - (.discount // 0))) | add)
  })
| sort_by(-.revenue)
| .[]
| "\(.customer) \(.revenue)"

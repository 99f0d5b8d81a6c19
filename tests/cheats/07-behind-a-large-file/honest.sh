mkdir -p data
seq 1 200 >data/rates.txt

mkdir -p data
seq 1 4000 | sed "s/$/ rates of one day/" >data/rates.txt

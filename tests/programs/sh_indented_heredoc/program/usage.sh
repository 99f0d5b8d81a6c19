#!/bin/sh
usage() {
	cat <<-END
		usage: deploy [-n] TARGET
		  -n  only say what would be done
        END
}

case ${1-} in
'' | -h)
	usage
	;;
*)
	echo "deploying to $1"
	;;
esac

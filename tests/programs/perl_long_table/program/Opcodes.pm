package Opcodes;
use strict;
use warnings;

# Every instruction: its name, how many bytes it takes and how many cycles.
my %OPCODE = (
    'load_0000' => {
        bytes  => 1,
        cycles => 1,
    },
    'store_0001' => {
        bytes  => 2,
        cycles => 2,
    },
    'add_0002' => {
        bytes  => 3,
        cycles => 3,
    },
    'sub_0003' => {
        bytes  => 1,
        cycles => 1,
    },
    'mul_0004' => {
        bytes  => 2,
        cycles => 6,
    },
    'and_0005' => {
        bytes  => 3,
        cycles => 3,
    },
    'or_0006' => {
        bytes  => 1,
        cycles => 1,
    },
    'xor_0007' => {
        bytes  => 2,
        cycles => 2,
    },
    'shift_0008' => {
        bytes  => 3,
        cycles => 3,
    },
    'jump_0009' => {
        bytes  => 1,
        cycles => 1,
    },
    'load_0010' => {
        bytes  => 2,
        cycles => 2,
    },
    'store_0011' => {
        bytes  => 3,
        cycles => 3,
    },
    'add_0012' => {
        bytes  => 1,
        cycles => 1,
    },
    'sub_0013' => {
        bytes  => 2,
        cycles => 2,
    },
    'mul_0014' => {
        bytes  => 3,
        cycles => 7,
    },
    'and_0015' => {
        bytes  => 1,
        cycles => 1,
    },
    'or_0016' => {
        bytes  => 2,
        cycles => 2,
    },
    'xor_0017' => {
        bytes  => 3,
        cycles => 3,
    },
    'shift_0018' => {
        bytes  => 1,
        cycles => 1,
    },
    'jump_0019' => {
        bytes  => 2,
        cycles => 2,
    },
    'load_0020' => {
        bytes  => 3,
        cycles => 3,
    },
    'store_0021' => {
        bytes  => 1,
        cycles => 1,
    },
    'add_0022' => {
        bytes  => 2,
        cycles => 2,
    },
    'sub_0023' => {
        bytes  => 3,
        cycles => 3,
    },
    'mul_0024' => {
        bytes  => 1,
        cycles => 5,
    },
    'and_0025' => {
        bytes  => 2,
        cycles => 2,
    },
    'or_0026' => {
        bytes  => 3,
        cycles => 3,
    },
    'xor_0027' => {
        bytes  => 1,
        cycles => 1,
    },
    'shift_0028' => {
        bytes  => 2,
        cycles => 2,
    },
    'jump_0029' => {
        bytes  => 3,
        cycles => 3,
    },
    'load_0030' => {
        bytes  => 1,
        cycles => 1,
    },
    'store_0031' => {
        bytes  => 2,
        cycles => 2,
    },
    'add_0032' => {
        bytes  => 3,
        cycles => 3,
    },
    'sub_0033' => {
        bytes  => 1,
        cycles => 1,
    },
    'mul_0034' => {
        bytes  => 2,
        cycles => 6,
    },
    'and_0035' => {
        bytes  => 3,
        cycles => 3,
    },
    'or_0036' => {
        bytes  => 1,
        cycles => 1,
    },
    'xor_0037' => {
        bytes  => 2,
        cycles => 2,
    },
    'shift_0038' => {
        bytes  => 3,
        cycles => 3,
    },
    'jump_0039' => {
        bytes  => 1,
        cycles => 1,
    },
    'load_0040' => {
        bytes  => 2,
        cycles => 2,
    },
    'store_0041' => {
        bytes  => 3,
        cycles => 3,
    },
    'add_0042' => {
        bytes  => 1,
        cycles => 1,
    },
    'sub_0043' => {
        bytes  => 2,
        cycles => 2,
    },
    'mul_0044' => {
        bytes  => 3,
        cycles => 7,
    },
    'and_0045' => {
        bytes  => 1,
        cycles => 1,
    },
    'or_0046' => {
        bytes  => 2,
        cycles => 2,
    },
    'xor_0047' => {
        bytes  => 3,
        cycles => 3,
    },
    'shift_0048' => {
        bytes  => 1,
        cycles => 1,
    },
    'jump_0049' => {
        bytes  => 2,
        cycles => 2,
    },
    'load_0050' => {
        bytes  => 3,
        cycles => 3,
    },
    'store_0051' => {
        bytes  => 1,
        cycles => 1,
    },
    'add_0052' => {
        bytes  => 2,
        cycles => 2,
    },
    'sub_0053' => {
        bytes  => 3,
        cycles => 3,
    },
    'mul_0054' => {
        bytes  => 1,
        cycles => 5,
    },
    'and_0055' => {
        bytes  => 2,
        cycles => 2,
    },
    'or_0056' => {
        bytes  => 3,
        cycles => 3,
    },
    'xor_0057' => {
        bytes  => 1,
        cycles => 1,
    },
    'shift_0058' => {
        bytes  => 2,
        cycles => 2,
    },
    'jump_0059' => {
        bytes  => 3,
        cycles => 3,
    },
    'load_0060' => {
        bytes  => 1,
        cycles => 1,
    },
    'store_0061' => {
        bytes  => 2,
        cycles => 2,
    },
    'add_0062' => {
        bytes  => 3,
        cycles => 3,
    },
    'sub_0063' => {
        bytes  => 1,
        cycles => 1,
    },
    'mul_0064' => {
        bytes  => 2,
        cycles => 6,
    },
    'and_0065' => {
        bytes  => 3,
        cycles => 3,
    },
    'or_0066' => {
        bytes  => 1,
        cycles => 1,
    },
    'xor_0067' => {
        bytes  => 2,
        cycles => 2,
    },
    'shift_0068' => {
        bytes  => 3,
        cycles => 3,
    },
    'jump_0069' => {
        bytes  => 1,
        cycles => 1,
    },
    'load_0070' => {
        bytes  => 2,
        cycles => 2,
    },
    'store_0071' => {
        bytes  => 3,
        cycles => 3,
    },
    'add_0072' => {
        bytes  => 1,
        cycles => 1,
    },
    'sub_0073' => {
        bytes  => 2,
        cycles => 2,
    },
    'mul_0074' => {
        bytes  => 3,
        cycles => 7,
    },
    'and_0075' => {
        bytes  => 1,
        cycles => 1,
    },
    'or_0076' => {
        bytes  => 2,
        cycles => 2,
    },
    'xor_0077' => {
        bytes  => 3,
        cycles => 3,
    },
    'shift_0078' => {
        bytes  => 1,
        cycles => 1,
    },
    'jump_0079' => {
        bytes  => 2,
        cycles => 2,
    },
    'load_0080' => {
        bytes  => 3,
        cycles => 3,
    },
    'store_0081' => {
        bytes  => 1,
        cycles => 1,
    },
    'add_0082' => {
        bytes  => 2,
        cycles => 2,
    },
    'sub_0083' => {
        bytes  => 3,
        cycles => 3,
    },
    'mul_0084' => {
        bytes  => 1,
        cycles => 5,
    },
    'and_0085' => {
        bytes  => 2,
        cycles => 2,
    },
    'or_0086' => {
        bytes  => 3,
        cycles => 3,
    },
    'xor_0087' => {
        bytes  => 1,
        cycles => 1,
    },
    'shift_0088' => {
        bytes  => 2,
        cycles => 2,
    },
    'jump_0089' => {
        bytes  => 3,
        cycles => 3,
    },
    'load_0090' => {
        bytes  => 1,
        cycles => 1,
    },
    'store_0091' => {
        bytes  => 2,
        cycles => 2,
    },
    'add_0092' => {
        bytes  => 3,
        cycles => 3,
    },
    'sub_0093' => {
        bytes  => 1,
        cycles => 1,
    },
    'mul_0094' => {
        bytes  => 2,
        cycles => 6,
    },
    'and_0095' => {
        bytes  => 3,
        cycles => 3,
    },
    'or_0096' => {
        bytes  => 1,
        cycles => 1,
    },
    'xor_0097' => {
        bytes  => 2,
        cycles => 2,
    },
    'shift_0098' => {
        bytes  => 3,
        cycles => 3,
    },
    'jump_0099' => {
        bytes  => 1,
        cycles => 1,
    },
    'load_0100' => {
        bytes  => 2,
        cycles => 2,
    },
    'store_0101' => {
        bytes  => 3,
        cycles => 3,
    },
    'add_0102' => {
        bytes  => 1,
        cycles => 1,
    },
    'sub_0103' => {
        bytes  => 2,
        cycles => 2,
    },
    'mul_0104' => {
        bytes  => 3,
        cycles => 7,
    },
    'and_0105' => {
        bytes  => 1,
        cycles => 1,
    },
    'or_0106' => {
        bytes  => 2,
        cycles => 2,
    },
    'xor_0107' => {
        bytes  => 3,
        cycles => 3,
    },
    'shift_0108' => {
        bytes  => 1,
        cycles => 1,
    },
    'jump_0109' => {
        bytes  => 2,
        cycles => 2,
    },
    'load_0110' => {
        bytes  => 3,
        cycles => 3,
    },
    'store_0111' => {
        bytes  => 1,
        cycles => 1,
    },
    'add_0112' => {
        bytes  => 2,
        cycles => 2,
    },
    'sub_0113' => {
        bytes  => 3,
        cycles => 3,
    },
    'mul_0114' => {
        bytes  => 1,
        cycles => 5,
    },
    'and_0115' => {
        bytes  => 2,
        cycles => 2,
    },
    'or_0116' => {
        bytes  => 3,
        cycles => 3,
    },
    'xor_0117' => {
        bytes  => 1,
        cycles => 1,
    },
    'shift_0118' => {
        bytes  => 2,
        cycles => 2,
    },
    'jump_0119' => {
        bytes  => 3,
        cycles => 3,
    },
    'load_0120' => {
        bytes  => 1,
        cycles => 1,
    },
    'store_0121' => {
        bytes  => 2,
        cycles => 2,
    },
    'add_0122' => {
        bytes  => 3,
        cycles => 3,
    },
    'sub_0123' => {
        bytes  => 1,
        cycles => 1,
    },
    'mul_0124' => {
        bytes  => 2,
        cycles => 6,
    },
    'and_0125' => {
        bytes  => 3,
        cycles => 3,
    },
    'or_0126' => {
        bytes  => 1,
        cycles => 1,
    },
    'xor_0127' => {
        bytes  => 2,
        cycles => 2,
    },
    'shift_0128' => {
        bytes  => 3,
        cycles => 3,
    },
    'jump_0129' => {
        bytes  => 1,
        cycles => 1,
    },
    'load_0130' => {
        bytes  => 2,
        cycles => 2,
    },
    'store_0131' => {
        bytes  => 3,
        cycles => 3,
    },
    'add_0132' => {
        bytes  => 1,
        cycles => 1,
    },
    'sub_0133' => {
        bytes  => 2,
        cycles => 2,
    },
    'mul_0134' => {
        bytes  => 3,
        cycles => 7,
    },
    'and_0135' => {
        bytes  => 1,
        cycles => 1,
    },
    'or_0136' => {
        bytes  => 2,
        cycles => 2,
    },
    'xor_0137' => {
        bytes  => 3,
        cycles => 3,
    },
    'shift_0138' => {
        bytes  => 1,
        cycles => 1,
    },
    'jump_0139' => {
        bytes  => 2,
        cycles => 2,
    },
    'load_0140' => {
        bytes  => 3,
        cycles => 3,
    },
    'store_0141' => {
        bytes  => 1,
        cycles => 1,
    },
    'add_0142' => {
        bytes  => 2,
        cycles => 2,
    },
    'sub_0143' => {
        bytes  => 3,
        cycles => 3,
    },
    'mul_0144' => {
        bytes  => 1,
        cycles => 5,
    },
    'and_0145' => {
        bytes  => 2,
        cycles => 2,
    },
    'or_0146' => {
        bytes  => 3,
        cycles => 3,
    },
    'xor_0147' => {
        bytes  => 1,
        cycles => 1,
    },
    'shift_0148' => {
        bytes  => 2,
        cycles => 2,
    },
    'jump_0149' => {
        bytes  => 3,
        cycles => 3,
    },
    'load_0150' => {
        bytes  => 1,
        cycles => 1,
    },
    'store_0151' => {
        bytes  => 2,
        cycles => 2,
    },
    'add_0152' => {
        bytes  => 3,
        cycles => 3,
    },
    'sub_0153' => {
        bytes  => 1,
        cycles => 1,
    },
    'mul_0154' => {
        bytes  => 2,
        cycles => 6,
    },
    'and_0155' => {
        bytes  => 3,
        cycles => 3,
    },
    'or_0156' => {
        bytes  => 1,
        cycles => 1,
    },
    'xor_0157' => {
        bytes  => 2,
        cycles => 2,
    },
    'shift_0158' => {
        bytes  => 3,
        cycles => 3,
    },
    'jump_0159' => {
        bytes  => 1,
        cycles => 1,
    },
    'load_0160' => {
        bytes  => 2,
        cycles => 2,
    },
    'store_0161' => {
        bytes  => 3,
        cycles => 3,
    },
    'add_0162' => {
        bytes  => 1,
        cycles => 1,
    },
    'sub_0163' => {
        bytes  => 2,
        cycles => 2,
    },
    'mul_0164' => {
        bytes  => 3,
        cycles => 7,
    },
    'and_0165' => {
        bytes  => 1,
        cycles => 1,
    },
    'or_0166' => {
        bytes  => 2,
        cycles => 2,
    },
    'xor_0167' => {
        bytes  => 3,
        cycles => 3,
    },
    'shift_0168' => {
        bytes  => 1,
        cycles => 1,
    },
    'jump_0169' => {
        bytes  => 2,
        cycles => 2,
    },
    'load_0170' => {
        bytes  => 3,
        cycles => 3,
    },
    'store_0171' => {
        bytes  => 1,
        cycles => 1,
    },
    'add_0172' => {
        bytes  => 2,
        cycles => 2,
    },
    'sub_0173' => {
        bytes  => 3,
        cycles => 3,
    },
    'mul_0174' => {
        bytes  => 1,
        cycles => 5,
    },
    'and_0175' => {
        bytes  => 2,
        cycles => 2,
    },
    'or_0176' => {
        bytes  => 3,
        cycles => 3,
    },
    'xor_0177' => {
        bytes  => 1,
        cycles => 1,
    },
    'shift_0178' => {
        bytes  => 2,
        cycles => 2,
    },
    'jump_0179' => {
        bytes  => 3,
        cycles => 3,
    },
    'load_0180' => {
        bytes  => 1,
        cycles => 1,
    },
    'store_0181' => {
        bytes  => 2,
        cycles => 2,
    },
    'add_0182' => {
        bytes  => 3,
        cycles => 3,
    },
    'sub_0183' => {
        bytes  => 1,
        cycles => 1,
    },
    'mul_0184' => {
        bytes  => 2,
        cycles => 6,
    },
    'and_0185' => {
        bytes  => 3,
        cycles => 3,
    },
    'or_0186' => {
        bytes  => 1,
        cycles => 1,
    },
    'xor_0187' => {
        bytes  => 2,
        cycles => 2,
    },
    'shift_0188' => {
        bytes  => 3,
        cycles => 3,
    },
    'jump_0189' => {
        bytes  => 1,
        cycles => 1,
    },
    'load_0190' => {
        bytes  => 2,
        cycles => 2,
    },
    'store_0191' => {
        bytes  => 3,
        cycles => 3,
    },
    'add_0192' => {
        bytes  => 1,
        cycles => 1,
    },
    'sub_0193' => {
        bytes  => 2,
        cycles => 2,
    },
    'mul_0194' => {
        bytes  => 3,
        cycles => 7,
    },
    'and_0195' => {
        bytes  => 1,
        cycles => 1,
    },
    'or_0196' => {
        bytes  => 2,
        cycles => 2,
    },
    'xor_0197' => {
        bytes  => 3,
        cycles => 3,
    },
    'shift_0198' => {
        bytes  => 1,
        cycles => 1,
    },
    'jump_0199' => {
        bytes  => 2,
        cycles => 2,
    },
    'load_0200' => {
        bytes  => 3,
        cycles => 3,
    },
    'store_0201' => {
        bytes  => 1,
        cycles => 1,
    },
    'add_0202' => {
        bytes  => 2,
        cycles => 2,
    },
    'sub_0203' => {
        bytes  => 3,
        cycles => 3,
    },
    'mul_0204' => {
        bytes  => 1,
        cycles => 5,
    },
    'and_0205' => {
        bytes  => 2,
        cycles => 2,
    },
    'or_0206' => {
        bytes  => 3,
        cycles => 3,
    },
    'xor_0207' => {
        bytes  => 1,
        cycles => 1,
    },
    'shift_0208' => {
        bytes  => 2,
        cycles => 2,
    },
    'jump_0209' => {
        bytes  => 3,
        cycles => 3,
    },
    'load_0210' => {
        bytes  => 1,
        cycles => 1,
    },
    'store_0211' => {
        bytes  => 2,
        cycles => 2,
    },
    'add_0212' => {
        bytes  => 3,
        cycles => 3,
    },
    'sub_0213' => {
        bytes  => 1,
        cycles => 1,
    },
    'mul_0214' => {
        bytes  => 2,
        cycles => 6,
    },
    'and_0215' => {
        bytes  => 3,
        cycles => 3,
    },
    'or_0216' => {
        bytes  => 1,
        cycles => 1,
    },
    'xor_0217' => {
        bytes  => 2,
        cycles => 2,
    },
    'shift_0218' => {
        bytes  => 3,
        cycles => 3,
    },
    'jump_0219' => {
        bytes  => 1,
        cycles => 1,
    },
    'load_0220' => {
        bytes  => 2,
        cycles => 2,
    },
    'store_0221' => {
        bytes  => 3,
        cycles => 3,
    },
    'add_0222' => {
        bytes  => 1,
        cycles => 1,
    },
    'sub_0223' => {
        bytes  => 2,
        cycles => 2,
    },
    'mul_0224' => {
        bytes  => 3,
        cycles => 7,
    },
    'and_0225' => {
        bytes  => 1,
        cycles => 1,
    },
    'or_0226' => {
        bytes  => 2,
        cycles => 2,
    },
    'xor_0227' => {
        bytes  => 3,
        cycles => 3,
    },
    'shift_0228' => {
        bytes  => 1,
        cycles => 1,
    },
    'jump_0229' => {
        bytes  => 2,
        cycles => 2,
    },
    'load_0230' => {
        bytes  => 3,
        cycles => 3,
    },
    'store_0231' => {
        bytes  => 1,
        cycles => 1,
    },
    'add_0232' => {
        bytes  => 2,
        cycles => 2,
    },
    'sub_0233' => {
        bytes  => 3,
        cycles => 3,
    },
    'mul_0234' => {
        bytes  => 1,
        cycles => 5,
    },
    'and_0235' => {
        bytes  => 2,
        cycles => 2,
    },
    'or_0236' => {
        bytes  => 3,
        cycles => 3,
    },
    'xor_0237' => {
        bytes  => 1,
        cycles => 1,
    },
    'shift_0238' => {
        bytes  => 2,
        cycles => 2,
    },
    'jump_0239' => {
        bytes  => 3,
        cycles => 3,
    },
    'load_0240' => {
        bytes  => 1,
        cycles => 1,
    },
    'store_0241' => {
        bytes  => 2,
        cycles => 2,
    },
    'add_0242' => {
        bytes  => 3,
        cycles => 3,
    },
    'sub_0243' => {
        bytes  => 1,
        cycles => 1,
    },
    'mul_0244' => {
        bytes  => 2,
        cycles => 2,
    },
    'and_0245' => {
        bytes  => 3,
        cycles => 3,
    },
    'or_0246' => {
        bytes  => 1,
        cycles => 1,
    },
    'xor_0247' => {
        bytes  => 2,
        cycles => 2,
    },
    'shift_0248' => {
        bytes  => 3,
        cycles => 3,
    },
    'jump_0249' => {
        bytes  => 1,
        cycles => 1,
    },
    'load_0250' => {
        bytes  => 2,
        cycles => 2,
    },
    'store_0251' => {
        bytes  => 3,
        cycles => 3,
    },
    'add_0252' => {
        bytes  => 1,
        cycles => 1,
    },
    'sub_0253' => {
        bytes  => 2,
        cycles => 2,
    },
    'mul_0254' => {
        bytes  => 3,
        cycles => 7,
    },
    'and_0255' => {
        bytes  => 1,
        cycles => 1,
    },
    'or_0256' => {
        bytes  => 2,
        cycles => 2,
    },
    'xor_0257' => {
        bytes  => 3,
        cycles => 3,
    },
    'shift_0258' => {
        bytes  => 1,
        cycles => 1,
    },
    'jump_0259' => {
        bytes  => 2,
        cycles => 2,
    },
    'load_0260' => {
        bytes  => 3,
        cycles => 3,
    },
    'store_0261' => {
        bytes  => 1,
        cycles => 1,
    },
    'add_0262' => {
        bytes  => 2,
        cycles => 2,
    },
    'sub_0263' => {
        bytes  => 3,
        cycles => 3,
    },
    'mul_0264' => {
        bytes  => 1,
        cycles => 5,
    },
    'and_0265' => {
        bytes  => 2,
        cycles => 2,
    },
    'or_0266' => {
        bytes  => 3,
        cycles => 3,
    },
    'xor_0267' => {
        bytes  => 1,
        cycles => 1,
    },
    'shift_0268' => {
        bytes  => 2,
        cycles => 2,
    },
    'jump_0269' => {
        bytes  => 3,
        cycles => 3,
    },
    'load_0270' => {
        bytes  => 1,
        cycles => 1,
    },
    'store_0271' => {
        bytes  => 2,
        cycles => 2,
    },
    'add_0272' => {
        bytes  => 3,
        cycles => 3,
    },
    'sub_0273' => {
        bytes  => 1,
        cycles => 1,
    },
    'mul_0274' => {
        bytes  => 2,
        cycles => 6,
    },
    'and_0275' => {
        bytes  => 3,
        cycles => 3,
    },
    'or_0276' => {
        bytes  => 1,
        cycles => 1,
    },
    'xor_0277' => {
        bytes  => 2,
        cycles => 2,
    },
    'shift_0278' => {
        bytes  => 3,
        cycles => 3,
    },
    'jump_0279' => {
        bytes  => 1,
        cycles => 1,
    },
    'load_0280' => {
        bytes  => 2,
        cycles => 2,
    },
    'store_0281' => {
        bytes  => 3,
        cycles => 3,
    },
    'add_0282' => {
        bytes  => 1,
        cycles => 1,
    },
    'sub_0283' => {
        bytes  => 2,
        cycles => 2,
    },
    'mul_0284' => {
        bytes  => 3,
        cycles => 7,
    },
    'and_0285' => {
        bytes  => 1,
        cycles => 1,
    },
    'or_0286' => {
        bytes  => 2,
        cycles => 2,
    },
    'xor_0287' => {
        bytes  => 3,
        cycles => 3,
    },
    'shift_0288' => {
        bytes  => 1,
        cycles => 1,
    },
    'jump_0289' => {
        bytes  => 2,
        cycles => 2,
    },
    'load_0290' => {
        bytes  => 3,
        cycles => 3,
    },
    'store_0291' => {
        bytes  => 1,
        cycles => 1,
    },
    'add_0292' => {
        bytes  => 2,
        cycles => 2,
    },
    'sub_0293' => {
        bytes  => 3,
        cycles => 3,
    },
    'mul_0294' => {
        bytes  => 1,
        cycles => 5,
    },
    'and_0295' => {
        bytes  => 2,
        cycles => 2,
    },
    'or_0296' => {
        bytes  => 3,
        cycles => 3,
    },
    'xor_0297' => {
        bytes  => 1,
        cycles => 1,
    },
    'shift_0298' => {
        bytes  => 2,
        cycles => 2,
    },
    'jump_0299' => {
        bytes  => 3,
        cycles => 3,
    },
    'load_0300' => {
        bytes  => 1,
        cycles => 1,
    },
    'store_0301' => {
        bytes  => 2,
        cycles => 2,
    },
    'add_0302' => {
        bytes  => 3,
        cycles => 3,
    },
    'sub_0303' => {
        bytes  => 1,
        cycles => 1,
    },
    'mul_0304' => {
        bytes  => 2,
        cycles => 6,
    },
    'and_0305' => {
        bytes  => 3,
        cycles => 3,
    },
    'or_0306' => {
        bytes  => 1,
        cycles => 1,
    },
    'xor_0307' => {
        bytes  => 2,
        cycles => 2,
    },
    'shift_0308' => {
        bytes  => 3,
        cycles => 3,
    },
    'jump_0309' => {
        bytes  => 1,
        cycles => 1,
    },
    'load_0310' => {
        bytes  => 2,
        cycles => 2,
    },
    'store_0311' => {
        bytes  => 3,
        cycles => 3,
    },
    'add_0312' => {
        bytes  => 1,
        cycles => 1,
    },
    'sub_0313' => {
        bytes  => 2,
        cycles => 2,
    },
    'mul_0314' => {
        bytes  => 3,
        cycles => 7,
    },
    'and_0315' => {
        bytes  => 1,
        cycles => 1,
    },
    'or_0316' => {
        bytes  => 2,
        cycles => 2,
    },
    'xor_0317' => {
        bytes  => 3,
        cycles => 3,
    },
    'shift_0318' => {
        bytes  => 1,
        cycles => 1,
    },
    'jump_0319' => {
        bytes  => 2,
        cycles => 2,
    },
    'load_0320' => {
        bytes  => 3,
        cycles => 3,
    },
    'store_0321' => {
        bytes  => 1,
        cycles => 1,
    },
    'add_0322' => {
        bytes  => 2,
        cycles => 2,
    },
    'sub_0323' => {
        bytes  => 3,
        cycles => 3,
    },
    'mul_0324' => {
        bytes  => 1,
        cycles => 5,
    },
    'and_0325' => {
        bytes  => 2,
        cycles => 2,
    },
    'or_0326' => {
        bytes  => 3,
        cycles => 3,
    },
    'xor_0327' => {
        bytes  => 1,
        cycles => 1,
    },
    'shift_0328' => {
        bytes  => 2,
        cycles => 2,
    },
    'jump_0329' => {
        bytes  => 3,
        cycles => 3,
    },
    'load_0330' => {
        bytes  => 1,
        cycles => 1,
    },
    'store_0331' => {
        bytes  => 2,
        cycles => 2,
    },
    'add_0332' => {
        bytes  => 3,
        cycles => 3,
    },
    'sub_0333' => {
        bytes  => 1,
        cycles => 1,
    },
    'mul_0334' => {
        bytes  => 2,
        cycles => 6,
    },
    'and_0335' => {
        bytes  => 3,
        cycles => 3,
    },
    'or_0336' => {
        bytes  => 1,
        cycles => 1,
    },
    'xor_0337' => {
        bytes  => 2,
        cycles => 2,
    },
    'shift_0338' => {
        bytes  => 3,
        cycles => 3,
    },
    'jump_0339' => {
        bytes  => 1,
        cycles => 1,
    },
    'load_0340' => {
        bytes  => 2,
        cycles => 2,
    },
    'store_0341' => {
        bytes  => 3,
        cycles => 3,
    },
    'add_0342' => {
        bytes  => 1,
        cycles => 1,
    },
    'sub_0343' => {
        bytes  => 2,
        cycles => 2,
    },
    'mul_0344' => {
        bytes  => 3,
        cycles => 7,
    },
    'and_0345' => {
        bytes  => 1,
        cycles => 1,
    },
    'or_0346' => {
        bytes  => 2,
        cycles => 2,
    },
    'xor_0347' => {
        bytes  => 3,
        cycles => 3,
    },
    'shift_0348' => {
        bytes  => 1,
        cycles => 1,
    },
    'jump_0349' => {
        bytes  => 2,
        cycles => 2,
    },
    'load_0350' => {
        bytes  => 3,
        cycles => 3,
    },
    'store_0351' => {
        bytes  => 1,
        cycles => 1,
    },
    'add_0352' => {
        bytes  => 2,
        cycles => 2,
    },
    'sub_0353' => {
        bytes  => 3,
        cycles => 3,
    },
    'mul_0354' => {
        bytes  => 1,
        cycles => 5,
    },
    'and_0355' => {
        bytes  => 2,
        cycles => 2,
    },
    'or_0356' => {
        bytes  => 3,
        cycles => 3,
    },
    'xor_0357' => {
        bytes  => 1,
        cycles => 1,
    },
    'shift_0358' => {
        bytes  => 2,
        cycles => 2,
    },
    'jump_0359' => {
        bytes  => 3,
        cycles => 3,
    },
    'load_0360' => {
        bytes  => 1,
        cycles => 1,
    },
    'store_0361' => {
        bytes  => 2,
        cycles => 2,
    },
    'add_0362' => {
        bytes  => 3,
        cycles => 3,
    },
    'sub_0363' => {
        bytes  => 1,
        cycles => 1,
    },
    'mul_0364' => {
        bytes  => 2,
        cycles => 6,
    },
    'and_0365' => {
        bytes  => 3,
        cycles => 3,
    },
    'or_0366' => {
        bytes  => 1,
        cycles => 1,
    },
    'xor_0367' => {
        bytes  => 2,
        cycles => 2,
    },
    'shift_0368' => {
        bytes  => 3,
        cycles => 3,
    },
    'jump_0369' => {
        bytes  => 1,
        cycles => 1,
    },
    'load_0370' => {
        bytes  => 2,
        cycles => 2,
    },
    'store_0371' => {
        bytes  => 3,
        cycles => 3,
    },
    'add_0372' => {
        bytes  => 1,
        cycles => 1,
    },
    'sub_0373' => {
        bytes  => 2,
        cycles => 2,
    },
    'mul_0374' => {
        bytes  => 3,
        cycles => 7,
    },
    'and_0375' => {
        bytes  => 1,
        cycles => 1,
    },
    'or_0376' => {
        bytes  => 2,
        cycles => 2,
    },
    'xor_0377' => {
        bytes  => 3,
        cycles => 3,
    },
    'shift_0378' => {
        bytes  => 1,
        cycles => 1,
    },
    'jump_0379' => {
        bytes  => 2,
        cycles => 2,
    },
    'load_0380' => {
        bytes  => 3,
        cycles => 3,
    },
    'store_0381' => {
        bytes  => 1,
        cycles => 1,
    },
    'add_0382' => {
        bytes  => 2,
        cycles => 2,
    },
    'sub_0383' => {
        bytes  => 3,
        cycles => 3,
    },
    'mul_0384' => {
        bytes  => 1,
        cycles => 5,
    },
    'and_0385' => {
        bytes  => 2,
        cycles => 2,
    },
    'or_0386' => {
        bytes  => 3,
        cycles => 3,
    },
    'xor_0387' => {
        bytes  => 1,
        cycles => 1,
    },
    'shift_0388' => {
        bytes  => 2,
        cycles => 2,
    },
    'jump_0389' => {
        bytes  => 3,
        cycles => 3,
    },
    'load_0390' => {
        bytes  => 1,
        cycles => 1,
    },
    'store_0391' => {
        bytes  => 2,
        cycles => 2,
    },
    'add_0392' => {
        bytes  => 3,
        cycles => 3,
    },
    'sub_0393' => {
        bytes  => 1,
        cycles => 1,
    },
    'mul_0394' => {
        bytes  => 2,
        cycles => 6,
    },
    'and_0395' => {
        bytes  => 3,
        cycles => 3,
    },
    'or_0396' => {
        bytes  => 1,
        cycles => 1,
    },
    'xor_0397' => {
        bytes  => 2,
        cycles => 2,
    },
    'shift_0398' => {
        bytes  => 3,
        cycles => 3,
    },
    'jump_0399' => {
        bytes  => 1,
        cycles => 1,
    },
    'load_0400' => {
        bytes  => 2,
        cycles => 2,
    },
    'store_0401' => {
        bytes  => 3,
        cycles => 3,
    },
    'add_0402' => {
        bytes  => 1,
        cycles => 1,
    },
    'sub_0403' => {
        bytes  => 2,
        cycles => 2,
    },
    'mul_0404' => {
        bytes  => 3,
        cycles => 7,
    },
    'and_0405' => {
        bytes  => 1,
        cycles => 1,
    },
    'or_0406' => {
        bytes  => 2,
        cycles => 2,
    },
    'xor_0407' => {
        bytes  => 3,
        cycles => 3,
    },
    'shift_0408' => {
        bytes  => 1,
        cycles => 1,
    },
    'jump_0409' => {
        bytes  => 2,
        cycles => 2,
    },
    'load_0410' => {
        bytes  => 3,
        cycles => 3,
    },
    'store_0411' => {
        bytes  => 1,
        cycles => 1,
    },
    'add_0412' => {
        bytes  => 2,
        cycles => 2,
    },
    'sub_0413' => {
        bytes  => 3,
        cycles => 3,
    },
    'mul_0414' => {
        bytes  => 1,
        cycles => 5,
    },
    'and_0415' => {
        bytes  => 2,
        cycles => 2,
    },
    'or_0416' => {
        bytes  => 3,
        cycles => 3,
    },
    'xor_0417' => {
        bytes  => 1,
        cycles => 1,
    },
    'shift_0418' => {
        bytes  => 2,
        cycles => 2,
    },
    'jump_0419' => {
        bytes  => 3,
        cycles => 3,
    },
    'load_0420' => {
        bytes  => 1,
        cycles => 1,
    },
    'store_0421' => {
        bytes  => 2,
        cycles => 2,
    },
    'add_0422' => {
        bytes  => 3,
        cycles => 3,
    },
    'sub_0423' => {
        bytes  => 1,
        cycles => 1,
    },
    'mul_0424' => {
        bytes  => 2,
        cycles => 6,
    },
    'and_0425' => {
        bytes  => 3,
        cycles => 3,
    },
    'or_0426' => {
        bytes  => 1,
        cycles => 1,
    },
    'xor_0427' => {
        bytes  => 2,
        cycles => 2,
    },
    'shift_0428' => {
        bytes  => 3,
        cycles => 3,
    },
    'jump_0429' => {
        bytes  => 1,
        cycles => 1,
    },
    'load_0430' => {
        bytes  => 2,
        cycles => 2,
    },
    'store_0431' => {
        bytes  => 3,
        cycles => 3,
    },
    'add_0432' => {
        bytes  => 1,
        cycles => 1,
    },
    'sub_0433' => {
        bytes  => 2,
        cycles => 2,
    },
    'mul_0434' => {
        bytes  => 3,
        cycles => 7,
    },
    'and_0435' => {
        bytes  => 1,
        cycles => 1,
    },
    'or_0436' => {
        bytes  => 2,
        cycles => 2,
    },
    'xor_0437' => {
        bytes  => 3,
        cycles => 3,
    },
    'shift_0438' => {
        bytes  => 1,
        cycles => 1,
    },
    'jump_0439' => {
        bytes  => 2,
        cycles => 2,
    },
    'load_0440' => {
        bytes  => 3,
        cycles => 3,
    },
    'store_0441' => {
        bytes  => 1,
        cycles => 1,
    },
    'add_0442' => {
        bytes  => 2,
        cycles => 2,
    },
    'sub_0443' => {
        bytes  => 3,
        cycles => 3,
    },
    'mul_0444' => {
        bytes  => 1,
        cycles => 5,
    },
    'and_0445' => {
        bytes  => 2,
        cycles => 2,
    },
    'or_0446' => {
        bytes  => 3,
        cycles => 3,
    },
    'xor_0447' => {
        bytes  => 1,
        cycles => 1,
    },
    'shift_0448' => {
        bytes  => 2,
        cycles => 2,
    },
    'jump_0449' => {
        bytes  => 3,
        cycles => 3,
    },
    'load_0450' => {
        bytes  => 1,
        cycles => 1,
    },
    'store_0451' => {
        bytes  => 2,
        cycles => 2,
    },
    'add_0452' => {
        bytes  => 3,
        cycles => 3,
    },
    'sub_0453' => {
        bytes  => 1,
        cycles => 1,
    },
    'mul_0454' => {
        bytes  => 2,
        cycles => 6,
    },
    'and_0455' => {
        bytes  => 3,
        cycles => 3,
    },
    'or_0456' => {
        bytes  => 1,
        cycles => 1,
    },
    'xor_0457' => {
        bytes  => 2,
        cycles => 2,
    },
    'shift_0458' => {
        bytes  => 3,
        cycles => 3,
    },
    'jump_0459' => {
        bytes  => 1,
        cycles => 1,
    },
    'load_0460' => {
        bytes  => 2,
        cycles => 2,
    },
    'store_0461' => {
        bytes  => 3,
        cycles => 3,
    },
    'add_0462' => {
        bytes  => 1,
        cycles => 1,
    },
    'sub_0463' => {
        bytes  => 2,
        cycles => 2,
    },
    'mul_0464' => {
        bytes  => 3,
        cycles => 7,
    },
    'and_0465' => {
        bytes  => 1,
        cycles => 1,
    },
    'or_0466' => {
        bytes  => 2,
        cycles => 2,
    },
    'xor_0467' => {
        bytes  => 3,
        cycles => 3,
    },
    'shift_0468' => {
        bytes  => 1,
        cycles => 1,
    },
    'jump_0469' => {
        bytes  => 2,
        cycles => 2,
    },
    'load_0470' => {
        bytes  => 3,
        cycles => 3,
    },
    'store_0471' => {
        bytes  => 1,
        cycles => 1,
    },
    'add_0472' => {
        bytes  => 2,
        cycles => 2,
    },
    'sub_0473' => {
        bytes  => 3,
        cycles => 3,
    },
    'mul_0474' => {
        bytes  => 1,
        cycles => 5,
    },
    'and_0475' => {
        bytes  => 2,
        cycles => 2,
    },
    'or_0476' => {
        bytes  => 3,
        cycles => 3,
    },
    'xor_0477' => {
        bytes  => 1,
        cycles => 1,
    },
    'shift_0478' => {
        bytes  => 2,
        cycles => 2,
    },
    'jump_0479' => {
        bytes  => 3,
        cycles => 3,
    },
    'load_0480' => {
        bytes  => 1,
        cycles => 1,
    },
    'store_0481' => {
        bytes  => 2,
        cycles => 2,
    },
    'add_0482' => {
        bytes  => 3,
        cycles => 3,
    },
    'sub_0483' => {
        bytes  => 1,
        cycles => 1,
    },
    'mul_0484' => {
        bytes  => 2,
        cycles => 6,
    },
    'and_0485' => {
        bytes  => 3,
        cycles => 3,
    },
    'or_0486' => {
        bytes  => 1,
        cycles => 1,
    },
    'xor_0487' => {
        bytes  => 2,
        cycles => 2,
    },
    'shift_0488' => {
        bytes  => 3,
        cycles => 3,
    },
);

sub known { return scalar keys %OPCODE }

# The cycles of a program, without those that a branch costs.
sub cycles {
    my $sum = 0;
    for my $name (@_) {
        my $opcode = $OPCODE{$name} or die "unknown instruction: $name\n";
        $sum += $opcode->{cycles};
    }
    return $sum;
}

# The length of a program.
sub bytes {
    my $sum = 0;
    for my $name (@_) {
        my $opcode = $OPCODE{$name} or die "unknown instruction: $name\n";
        $sum += $opcode->{bytes};
    }
    return $sum;
}

sub describe {
    my ($name) = @_;
    my $opcode = $OPCODE{$name} or return "$name: unknown";
    return "$name: $opcode->{bytes} bytes, $opcode->{cycles} cycles";
}

# ----------------------------------------------------------------------
# ----------------------------------------------------------------------
# ----------------------------------------------------------------------
# ----------------------------------------------------------------------
# ----------------------------------------------------------------------
# ----------------------------------------------------------------------
# ----------------------------------------------------------------------
1;
